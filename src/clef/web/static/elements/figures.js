// Numbers as the server writes them, for what changes without it.

export function count(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

export function percent(share, digits = 1) {
  return `${(share * 100).toFixed(digits)} %`;
}
