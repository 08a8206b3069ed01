"""Turns seconds that are left into words."""


def duration(seconds: float) -> str:
    """Such as "12 s" and, from a minute and a half on, "3 min"."""
    return f"{seconds / 60:.0f} min" if seconds > 90 else f"{max(1.0, seconds):.0f} s"
