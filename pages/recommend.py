"""The Recommend page; to be written."""

import streamlit as st

st.title("Recommend", anchor=False)
st.page_link("pages/data.py", label="Choose data", icon=":material/arrow_forward:")
