"""Bytes of any table in, labelled examples out, or the full list of what is wrong. Pure but for reading."""
