"""Models, tools and stores of other vendors: one folder or file each, imported when used. Each belongs to an extra."""
