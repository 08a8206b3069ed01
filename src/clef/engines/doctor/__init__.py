"""Turns this machine, its drivers and its llama.cpp into findings, each with what to do about it."""
