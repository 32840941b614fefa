"""Tools of the tests and the docs: serving the dashboard, pictures of it."""
