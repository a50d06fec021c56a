"""The rules of installment payments, as pure functions of values. Uses only the standard library."""
