"""Who answers: a server somewhere, a llama.cpp of our own, or the built-in model, behind one protocol."""
