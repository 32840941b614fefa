"""Figures as functions: numbers in, a plotly figure out, no Streamlit inside."""
