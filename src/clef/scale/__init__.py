"""Turns tables of any size into answers on many machines, with the outcomes that one machine would give."""
