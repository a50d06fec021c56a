"""What Cuota knows about installment payments: values in, values out, standard library only."""
