"""A llama.cpp child that answers decisions."""
