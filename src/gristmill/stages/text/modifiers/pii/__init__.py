"""Personal data in texts: finding it by form and check digits, and putting something else in its place."""

from gristmill.stages.text.modifiers.pii.pii_modifier import PiiModifier

__all__ = ["PiiModifier"]
