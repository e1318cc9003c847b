#!/bin/sh
# Prints degrees Fahrenheit for whole degrees Celsius.
echo $(($1 * 9 / 5 - 32))
