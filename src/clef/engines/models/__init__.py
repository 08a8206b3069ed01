"""The decision models that llama.cpp can load: which there are, which fit here, and how they get here."""
