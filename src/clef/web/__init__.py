"""The page and the HTTP API."""
