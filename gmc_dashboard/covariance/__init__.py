"""Parts of the Covariance page; ``figures`` are functions that return them."""
