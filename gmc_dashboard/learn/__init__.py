"""Parts of the Learn page; ``figures`` are functions that return them."""
