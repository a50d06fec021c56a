"""The pages that people see in a browser: the checkout, the consumer's account, and the sandbox's inbox."""
