"""The Learn page's pictures that can be taken hold of, as the browser gets and tells them."""

from __future__ import annotations

import json
from typing import Any

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest


def plane_of(at: AppTest) -> list[dict[str, Any]]:
    """What the browser gets of each."""
    return [json.loads(element.proto.json) for element in at.get("bidi_component")]


def told(at: AppTest, /, **message: Any) -> AppTest:
    """The page after the browser has told that something was moved."""
    (element,) = at.get("bidi_component")
    number = plane_of(at)[0]["seen"] + 1
    payload = [{"event": "moved", "value": {**message, "number": number}}]
    states = at._tree.get_widget_states()
    name = f"$$STREAMLIT_INTERNAL_KEY_{element.proto.id}__events"
    states.widgets.append(WidgetState(id=name, json_trigger_value=json.dumps(payload)))
    return at._run(states)
