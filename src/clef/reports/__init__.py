"""Numbers and outcomes in, what people look at out."""
