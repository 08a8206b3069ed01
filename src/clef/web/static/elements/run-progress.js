// <run-progress>: sends a table to be evaluated and shows how far it is. The end comes as a `run-end` event with
// `{run, problem}`; leaving, or `stop()`, ends the run on the server as well, and what is done stays readable.

const REDRAW_MS = 100;
const SPEAK_MS = 10_000;
const MEANS_SOMETHING = 20;

class RunProgress extends HTMLElement {
  connectedCallback() {
    this.querySelector('[data-do="stop"]').addEventListener("click", () => this.stop());
    addEventListener("beforeunload", (event) => this.running && event.preventDefault());
  }

  part(name) {
    return this.querySelector(`[data-part="${name}"]`);
  }

  stop() {
    this.abort?.abort();
  }

  async run(address, body) {
    Object.assign(this, { done: 0, rows: 0, right: 0, counted: 0, failed: 0, id: null, finish: null });
    this.abort = new AbortController();
    this.running = true;
    this.started = this.drawn = this.spoken = performance.now();
    this.draw();
    this.hidden = false;
    let problem = null;
    try {
      problem = await this.send(address, body);
    } catch (error) {
      if (error.name !== "AbortError") problem = { message: "clef stopped answering", hint: "is it still running?" };
    }
    this.running = false;
    this.hidden = true;
    this.dispatchEvent(new CustomEvent("run-end", { detail: { run: this.id, problem } }));
  }

  // Null where the run ended, else the error that kept it from starting.
  async send(address, body) {
    const headers = { "Content-Type": "text/csv" };
    const response = await fetch(address, { method: "POST", body, headers, signal: this.abort.signal });
    if (!response.ok) return (await response.json()).error;
    for await (const line of lines(response.body)) this.take(JSON.parse(line));
    return this.finish || !this.id ? null : { message: "the connection was lost", hint: "what is done is kept" };
  }

  take(line) {
    if (line.type === "start") {
      this.rows = line.rows;
      this.id = line.run;
      this.part("open").href = `/runs/${line.run}`;
      this.dispatchEvent(new CustomEvent("run-start", { detail: line }));
    } else if (line.type === "row") {
      this.done = line.done;
      this.failed += line.error ? 1 : 0;
      this.counted += line.correct === null ? 0 : 1;
      this.right += line.correct ? 1 : 0;
    } else this.finish = line;
    const now = performance.now();
    if (line.type !== "row" || now - this.drawn > REDRAW_MS) this.draw(now);
    if (now - this.spoken > SPEAK_MS) this.speak(now);
  }

  draw(now = performance.now()) {
    this.drawn = now;
    const bar = this.querySelector("progress");
    bar.max = this.rows || 1;
    bar.value = this.done;
    this.part("done").textContent = this.rows
      ? `${figure(this.done)} of ${figure(this.rows)} rows`
      : "Reading the table…";
    this.part("pace").textContent = this.pace(now);
    const share = ((100 * this.right) / (this.counted || 1)).toFixed(1);
    const right = this.counted >= MEANS_SOMETHING ? `${share} % right so far` : "";
    const failed = this.failed ? `${figure(this.failed)} failed` : "";
    this.part("so-far").textContent = [right, failed].filter(Boolean).join(" · ");
  }

  pace(now) {
    const seconds = (now - this.started) / 1000;
    if (this.done < 2 || seconds < 0.5) return "";
    const rate = this.done / seconds;
    return `${rate < 10 ? rate.toFixed(1) : figure(Math.round(rate))} rows a second · ${duration((this.rows - this.done) / rate)} left`;
  }

  speak(now) {
    this.spoken = now;
    this.part("spoken").textContent = `${this.done} of ${this.rows} rows done`;
  }
}

async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    yield* parts.filter(Boolean);
  }
  if (rest) yield rest;
}

function figure(number) {
  return number.toLocaleString("en").replaceAll(",", "\u202f");
}

function duration(seconds) {
  if (seconds < 90) return `${Math.ceil(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 90 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

customElements.define("run-progress", RunProgress);
