"""How values are shown to people: secrets masked, nothing that drives a terminal. Imports nothing else of the package."""
