// The page of the pool: a token in, then level and devices. The token stays in this variable alone.

const el = (id) => document.getElementById(id);
const whole = (n) => n.toLocaleString("en");
const many = (n, one) => `${whole(n)} ${n === 1 ? one : `${one}s`}`;
let token = null;

function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

class Refusal extends Error {
  constructor(status, told) {
    super(told);
    this.status = status;
  }
}

async function ask(path, { method = "GET", body } = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method, body: body && JSON.stringify(body), cache: "no-store", credentials: "omit",
      headers: { authorization: `Bearer ${token}`, ...(body && { "content-type": "application/json" }) },
    });
  } catch {
    throw new Refusal(0, "The service does not answer: is it still running?");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  throw new Refusal(answer.status, told?.error?.message || `status ${answer.status}`);
}

function words(error) {
  if (error.status === 401) return "This token is not valid, or is valid no more.";
  if (error.status === 403) return "This is the token of a device. The owner’s is needed.";
  return `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}`;
}

// the door

el("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  token = el("token").value.trim();
  el("token-wrong").textContent = "";
  if (!/^[\x21-\x7e]+$/.test(token)) {
    el("token-wrong").textContent = words({ status: 401 });
    return;
  }
  try {
    const level = await (await ask("/v1/devices")).json();
    el("token").value = "";
    open(level);
  } catch (error) {
    token = null;
    el("token-wrong").textContent = words(error);
    el("token").select();
  }
});

el("lock").addEventListener("click", () => location.reload());

function open(level) {
  el("gate").hidden = true;
  el("inside").hidden = el("lock").hidden = false;
  el("laboratory").hidden = !level.laboratory;
  showLevel(level);
  el("label").focus({ preventScroll: true });
}

// level and devices

function showLevel(level) {
  const given = level.lives - level.free, buckets = Math.floor(level.free / level.bucket);
  const devices = level.devices.filter((device) => device.role === "device");
  const tiles = [
    ["fakes in the pool", level.lives], ["given away", given],
    ["left to give", level.free], ["devices with a valid token", devices.filter((d) => d.valid).length],
  ];
  el("tiles").replaceChildren(...tiles.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, whole(value)))));
  el("gauge-given").style.width = `${(100 * given) / level.lives}%`;
  el("gauge").setAttribute("aria-label", `${whole(given)} of ${whole(level.lives)} fakes given away`);
  const last = buckets === 0
    ? "The pool is spent: no device can be given another bucket. Publish a new pool."
    : `Enough for ${many(buckets, "more bucket")}.`;
  el("level-said").textContent = `A bucket holds ${many(level.bucket, "fake")}, which nobody else is given. ${last}`;
  el("tiles").children[2].classList.toggle("bad", buckets === 0);
  el("state").textContent = `${whole(level.free)} of ${whole(level.lives)} left`;
  const rows = devices.map((device) => {
    const state = device.valid ? "valid" : device.expires && Date.parse(device.expires) < Date.now() ? "expired" : "shut out";
    const out = make("button", { type: "button", "data-id": device.id, "aria-label": `Shut out ${device.label || "this device"}` }, "Shut out");
    out.addEventListener("click", () => shutOut(out));
    return make("tr", { class: device.valid ? null : "gone" },
      make("th", { scope: "row" }, device.label || "without a name"), make("td", {}, device.created),
      make("td", {}, device.expires ? device.expires.slice(0, 10) : "no end"), make("td", {}, state), make("td", {}, device.valid ? out : ""));
  });
  if (!rows.length) rows.push(make("tr", {}, make("td", { colspan: 5, class: "gone" }, "No device has a token yet.")));
  el("devices").replaceChildren(...rows);
}

async function refreshLevel() {
  showLevel(await (await ask("/v1/devices")).json());
}

async function shutOut(button) {
  if (!button.classList.contains("danger")) {
    button.classList.add("danger");
    button.textContent = "For good?";
    button.addEventListener("blur", () => {
      button.classList.remove("danger");
      button.textContent = "Shut out";
    }, { once: true });
    return;
  }
  try {
    await ask(`/v1/devices/${encodeURIComponent(button.dataset.id)}`, { method: "DELETE" });
    await refreshLevel();
    el("devices-title").scrollIntoView({ block: "nearest" });
  } catch (error) {
    el("devices-wrong").textContent = words(error);
  }
}

el("admit").addEventListener("submit", async (event) => {
  event.preventDefault();
  el("devices-wrong").textContent = "";
  const days = el("days").value;
  try {
    const body = { label: el("label").value.trim(), expires_days: days === "" ? null : Number(days) };
    const made = await (await ask("/v1/devices", { method: "POST", body })).json();
    el("new-token").textContent = made.token;
    el("new").hidden = false;
    el("new").focus();
    el("admit").reset();
    await refreshLevel();
  } catch (error) {
    el("devices-wrong").textContent = words(error);
  }
});

el("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(el("new-token").textContent);
    el("copy").textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(el("new-token"));
    el("copy").textContent = "Selected";
  }
  setTimeout(() => { el("copy").textContent = "Copy"; }, 2000);
});
