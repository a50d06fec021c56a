"""The pages of the simulated card processor: the path that receives a card, and the bank's page that confirms a charge."""
