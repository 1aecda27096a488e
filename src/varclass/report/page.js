"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  button.hidden = false;
  button.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // Closed details are not printed: open them, and close again those that a reader had closed.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const each of opened) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of opened) each.open = false;
  });

  const tip = document.getElementById("tip");
  const X = 0, Y = 1, INDEX = 2, LABEL = 3, PREDICTED = 4, CONFIDENCE = 5, EVIDENCE = 6, SAMPLE = 7;
  const REACH = 16; // pixels from a sample that still mean it; a finger is thick

  for (const explorer of document.querySelectorAll(".explorer")) {
    const data = JSON.parse(explorer.querySelector("script").textContent);
    const boxes = [...explorer.querySelectorAll(".class-filter")];
    const wrong = explorer.querySelector(".only-wrong");
    const hidden = new Set();
    const panels = [...explorer.querySelectorAll(".latents")].map((box) => {
      return { box, points: data.panels[Number(box.dataset.panel)], marks: [...box.querySelectorAll(".point")], at: -1 };
    });

    const visible = (point) => !hidden.has(point[LABEL]) && !(wrong.checked && point[LABEL] === point[PREDICTED]);
    const name = (label) => data.classes[label] ?? "no class";
    const line = (text) => {
      const p = document.createElement("p");
      p.textContent = text;
      return p;
    };

    function apply() {
      hidden.clear();
      for (const box of boxes) if (!box.checked) hidden.add(Number(box.value));
      for (const panel of panels) {
        panel.points.forEach((point, i) => panel.marks[i].classList.toggle("off", !visible(point)));
        for (const each of panel.box.querySelectorAll(".contour, .name")) {
          each.classList.toggle("off", each.dataset.class.split(" ").every((label) => hidden.has(Number(label))));
        }
        leave(panel);
      }
    }

    function leave(panel) {
      panel.marks[panel.at]?.classList.remove("on");
      panel.at = -1;
      tip.hidden = true;
    }

    function show(panel, i) {
      leave(panel);
      const point = panel.points[i], mark = panel.marks[i];
      panel.at = i;
      mark.classList.add("on");
      const sample = data.samples[point[SAMPLE]];
      tip.replaceChildren();
      if (sample?.startsWith("data:image/png;base64,")) {
        const image = document.createElement("img");
        image.src = sample;
        image.width = image.height = 72;
        image.alt = "the sample";
        tip.append(image);
      } else if (sample) {
        tip.append(line(sample));
      }
      const evidence = point[EVIDENCE] === null ? "not finite" : point[EVIDENCE].toFixed(2);
      tip.append(
        line(`label: ${name(point[LABEL])}`),
        line(`predicted: ${name(point[PREDICTED])} (${(100 * point[CONFIDENCE]).toFixed(1)}%)`),
        line(`log p(z): ${evidence}`),
        line(`test sample ${point[INDEX]}`),
      );
      tip.hidden = false;
      const place = mark.getBoundingClientRect(), size = tip.getBoundingClientRect();
      const left = Math.min(place.right + 8, root.clientWidth - size.width - 4);
      const above = place.bottom + 8 + size.height > innerHeight;
      tip.style.left = `${Math.max(4, left) + scrollX}px`;
      tip.style.top = `${(above ? place.top - size.height - 8 : place.bottom + 8) + scrollY}px`;
    }

    function nearest(panel, event) {
      const svg = panel.box.querySelector("svg"), matrix = svg.getScreenCTM();
      const x = (event.clientX - matrix.e) / matrix.a, y = (event.clientY - matrix.f) / matrix.d;
      let best = -1, least = (REACH / matrix.a) ** 2;
      panel.points.forEach((point, i) => {
        const distance = (point[X] - x) ** 2 + (point[Y] - y) ** 2;
        if (distance < least && visible(point)) [best, least] = [i, distance];
      });
      return best;
    }

    for (const panel of panels) {
      const follow = (event) => {
        const i = nearest(panel, event);
        if (i < 0) leave(panel);
        else if (i !== panel.at) show(panel, i);
      };
      panel.box.addEventListener("pointermove", follow);
      panel.box.addEventListener("pointerdown", follow);
      panel.box.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave(panel));
      panel.box.addEventListener("blur", () => leave(panel));
      panel.box.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") leave(panel);
        if (!step) return;
        event.preventDefault();
        const order = panel.points.map((_, i) => i).filter((i) => visible(panel.points[i]));
        if (order.length) show(panel, order.at((order.indexOf(panel.at) + (panel.at < 0 && step < 0 ? 0 : step)) % order.length));
      });
    }

    for (const box of [...boxes, wrong]) box.addEventListener("change", apply);
    for (const each of explorer.querySelectorAll("[data-classes]")) {
      each.addEventListener("click", () => {
        for (const box of boxes) box.checked = each.dataset.classes === "all";
        apply();
      });
    }
  }
})();
