"""Programs for those who work on clef."""
