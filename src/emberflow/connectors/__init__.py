"""Source and sink contracts, and one module per system."""
