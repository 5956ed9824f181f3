"""One way to judge a text: what is measured on it, the rules that decide, and the stages that apply them."""
