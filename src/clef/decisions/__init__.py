"""What is asked and what is answered. Pure: no network, no files, no clock."""
