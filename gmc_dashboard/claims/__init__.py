"""Parts of the Claims page; ``figures`` are functions that return them."""
