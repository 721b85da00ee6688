"""Source and sink contracts, and one file per system."""
