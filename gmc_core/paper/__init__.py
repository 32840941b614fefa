"""The paper: its published figures, its tables reproduced, its claims measured."""
