"""How values are displayed: secrets masked, nothing that controls a terminal. Imports no other part of the package."""
