// The page works without this file. It adds: search as you type, keys, pan and zoom of the graph.
(() => {
  'use strict';
  const find = document.getElementById('find');
  const query = document.getElementById('query');

  // On a narrow screen the views are one line that scrolls.
  document.querySelector('nav a[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });

  document.addEventListener('keydown', (event) => {
    const target = event.target;
    const isTyping = target instanceof HTMLElement && target.matches('input, textarea, select');
    if (event.key === 'Escape' && isTyping && target.type === 'search') { target.blur(); return; }
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const links = [...document.querySelectorAll('.rows .grow > a')];
    if (event.key === '/') { event.preventDefault(); (query || find)?.focus(); }
    if ((event.key === 'j' || event.key === 'k') && links.length) {
      const at = links.indexOf(document.activeElement);
      const next = event.key === 'j' ? Math.min(at + 1, links.length - 1) : Math.max(at - 1, 0);
      links[next].focus();
    }
  });

  // Search as you type: the answer to an older question never replaces that to a newer one.
  const results = document.getElementById('results');
  if (query && results) {
    let wait = 0;
    let newest = 0;
    const ask = async () => {
      const number = ++newest;
      const fields = new URLSearchParams(new FormData(query.form));
      const shown = `memories?${fields}`;
      fields.set('part', 'list');
      try {
        const answer = await fetch(`memories?${fields}`, { credentials: 'same-origin' });
        const text = await answer.text();
        if (number !== newest) return;
        if (!answer.ok) throw new Error(text);
        // Our own server escaped the text of memories; a template runs no script.
        const template = document.createElement('template');
        template.innerHTML = text;
        results.replaceChildren(template.content);
        history.replaceState(null, '', shown);
      } catch {
        if (number === newest) results.textContent = 'The search got no answer. Does haversack open still run?';
      }
    };
    query.addEventListener('input', () => { clearTimeout(wait); wait = setTimeout(ask, 60); });
    for (const select of query.form.querySelectorAll('select')) select.addEventListener('change', ask);
  }

  // An edit that was not saved is not lost by leaving the page.
  const text = document.querySelector('textarea[name=text]');
  if (text) {
    let isSaved = false;
    text.form.addEventListener('submit', () => { isSaved = true; });
    text.addEventListener('keydown', (event) => {
      if (event.key === 's' && (event.ctrlKey || event.metaKey)) { event.preventDefault(); text.form.requestSubmit(); }
    });
    window.addEventListener('beforeunload', (event) => {
      if (!isSaved && text.value !== text.defaultValue) event.preventDefault();
    });
  }

  // Pan and zoom of the graph.
  const graph = document.querySelector('.graph svg');
  if (graph) {
    const whole = graph.viewBox.baseVal;
    const view = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
    const start = { ...view };
    const show = () => graph.setAttribute('viewBox', `${view.x} ${view.y} ${view.width} ${view.height}`);
    const zoom = (factor, x, y) => {
      const width = Math.min(Math.max(view.width * factor, start.width / 20), start.width * 3);
      const real = width / view.width;
      view.x += (x - view.x) * (1 - real);
      view.y += (y - view.y) * (1 - real);
      view.width = width;
      view.height *= real;
      show();
    };
    const middle = () => [view.x + view.width / 2, view.y + view.height / 2];
    const place = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(graph.getScreenCTM().inverse());
      return [point.x, point.y];
    };
    graph.addEventListener('wheel', (event) => {
      event.preventDefault();
      zoom(event.deltaY > 0 ? 1.15 : 1 / 1.15, ...place(event));
    }, { passive: false });
    let from = null;
    let isDragged = false;
    graph.addEventListener('pointerdown', (event) => { from = place(event); isDragged = false; });
    graph.addEventListener('pointermove', (event) => {
      if (!from || event.buttons !== 1) return;
      const [x, y] = place(event);
      // A hand that clicks moves a little.
      if (!isDragged && Math.hypot(x - from[0], y - from[1]) < view.width / 200) return;
      isDragged = true;
      view.x -= x - from[0];
      view.y -= y - from[1];
      show();
    });
    window.addEventListener('pointerup', () => { from = null; });
    // The end of a drag on a box opens nothing.
    graph.addEventListener('click', (event) => { if (isDragged) event.preventDefault(); }, true);
    graph.addEventListener('dragstart', (event) => event.preventDefault());
    graph.addEventListener('keydown', (event) => {
      const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!steps) return;
      event.preventDefault();
      view.x += steps[0] * view.width / 8;
      view.y += steps[1] * view.height / 8;
      show();
    });
    const act = {
      in: () => zoom(1 / 1.3, ...middle()),
      out: () => zoom(1.3, ...middle()),
      whole: () => { Object.assign(view, start); show(); },
    };
    for (const button of document.querySelectorAll('button[data-zoom]')) {
      button.hidden = false;
      button.addEventListener('click', () => act[button.dataset.zoom]());
    }
  }
})();
