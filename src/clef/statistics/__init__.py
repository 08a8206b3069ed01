"""Outcomes in, numbers with intervals out. Pure."""
