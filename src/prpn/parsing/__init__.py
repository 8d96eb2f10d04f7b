"""The parsing network of a trained model, alone and without torch: text in, distances and trees out."""
