"""The Fit page; to be written."""

import streamlit as st

st.title("Fit", anchor=False)
st.page_link("pages/data.py", label="Choose data", icon=":material/arrow_forward:")
