// Keeps what is too large for the browser's small storage (a table, an image) in its database, so that a reload loses
// nothing. It stays on this machine, for a week at most. Where there is no database, it lasts as long as the page.

const WEEK_MS = 7 * 24 * 3600 * 1000;

let opened;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open("clef", 1);
    request.onupgradeneeded = () => request.result.createObjectStore("files").createIndex("at", "at");
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function within(mode, work) {
  try {
    const transaction = (await open()).transaction("files", mode);
    const request = work(transaction.objectStore("files"));
    return await new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request?.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return undefined;
  }
}

// Any value the browser can copy, under a name; what is older than a week goes.
export function keep(name, value) {
  return within("readwrite", (files) => {
    files.index("at").openCursor(IDBKeyRange.upperBound(Date.now() - WEEK_MS)).onsuccess = ({ target }) => {
      target.result?.delete();
      target.result?.continue();
    };
    files.put({ value, at: Date.now() }, name);
  });
}

export async function kept(name) {
  return (await within("readonly", (files) => files.get(name)))?.value;
}

export function forget(name) {
  return within("readwrite", (files) => void files.delete(name));
}
