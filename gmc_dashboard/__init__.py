"""What the dashboard's pages share: look, components, and what is selected.

Pages read state from here, call ``gmc_core``, and draw; they compute nothing.
"""
