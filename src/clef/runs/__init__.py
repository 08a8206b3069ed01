"""Examples through an engine, at bounded concurrency."""
