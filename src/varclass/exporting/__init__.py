"""From a trained model to a file that runs without varclass: ONNX or torch.export, checked, with a model card beside it."""
