// Drags an item of a list to another place, by mouse, pen or finger. The item follows the pointer and its neighbours
// step aside: they are moved in the document, never the item itself, so that nothing in it loses the focus.

const EDGE = 64; // pixels from the edge of the window within which the page goes along
const STEP = 12;

export function drag(item, start, dropped) {
  const order = [...item.parentElement.children];
  const grabbed = start.clientY + scrollY - place(item);
  let last = start;
  item.classList.add("dragged");
  const follow = () => {
    const wanted = last.clientY + scrollY - grabbed;
    for (let next = item.nextElementSibling; next && wanted > place(item) + half(next); ) {
      item.before(next);
      next = item.nextElementSibling;
    }
    for (let before = item.previousElementSibling; before && wanted < place(item) - half(before); ) {
      item.after(before);
      before = item.previousElementSibling;
    }
    item.style.transform = `translateY(${wanted - place(item)}px)`;
  };
  const scrolling = setInterval(() => {
    if (last.clientY < EDGE) scrollBy(0, -STEP);
    else if (last.clientY > innerHeight - EDGE) scrollBy(0, STEP);
    else return;
    follow();
  }, 16);
  const moved = (event) => {
    if (event.pointerId !== start.pointerId) return;
    last = event;
    follow();
  };
  const ended = (event) => {
    if (event.type === "keydown" && event.key !== "Escape") return;
    clearInterval(scrolling);
    removeEventListener("pointermove", moved);
    for (const name of ["pointerup", "pointercancel", "keydown"]) removeEventListener(name, ended);
    item.classList.remove("dragged");
    item.style.transform = "";
    if (event.type !== "pointerup") for (const one of order) item.parentElement.append(one);
    dropped();
  };
  addEventListener("pointermove", moved);
  for (const name of ["pointerup", "pointercancel", "keydown"]) addEventListener(name, ended);
}

// Where the item stands in the page, however far it has been dragged.
function place(item) {
  return item.offsetTop + item.offsetParent.getBoundingClientRect().top + scrollY;
}

function half(item) {
  return item.offsetHeight / 2;
}
