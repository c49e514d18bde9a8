// What a GPU's memory is made of, in the colours that it has in every drawing.

export const memoryColours = {
  weights: "#0072b2", gradients: "#56b4e9", optimizer: "#7b5ea7", other: "#8a8f98",
  activations: "#e69f00", activationsToo: "#f3c766", working: "#9b3d00",
};
