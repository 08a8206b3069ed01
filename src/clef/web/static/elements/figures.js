// Numbers as the server writes them, for what changes without it.

export function count(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

// In as few digits as tell it from its neighbours.
export function threshold(value) {
  return Math.abs(value - Number(value.toFixed(2))) < 1e-9 ? value.toFixed(2) : value.toFixed(4);
}

export function percent(share, digits = 1) {
  return `${(share * 100).toFixed(digits)} %`;
}
