"""What tests are made with, ours and those of stages built on gristmill. The package itself never imports it."""
