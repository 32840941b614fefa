"""Parts of the Compare page; ``figures`` are functions that return them."""
