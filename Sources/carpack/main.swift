print("carpack")
