"""The page in a browser: no errors, no requests, and what a reader can do with it works."""

import json

import pytest

POINTS = "[...document.querySelectorAll('[data-panel=\"{}\"] .point')]"
VISIBLE = POINTS + ".filter(e => e.getClientRects().length).map(e => e.dataset.class)"


@pytest.fixture
def opened(browser, whole):
    """The standard page, freshly loaded at a given width."""

    def load(width=1200, scheme="light"):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=width < 500)
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        browser.open(whole.path)
        return browser

    return load


def rectangle(browser, panel, number):
    """The middle of a sample's mark on the screen, scrolled to."""
    mark = f"document.querySelectorAll('[data-panel=\"{panel}\"] .point')[{number}]"
    browser.run(f"document.documentElement.style.scrollBehavior = 'auto'; {mark}.scrollIntoView({{block: 'center'}})")
    found = browser.run(
        f"(() => {{ const r = {mark}.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] }})()"
    )
    return tuple(found)


def hover(browser, panel, number):
    """Point at a sample until it answers: a move that comes while the page is being laid out is lost."""
    x, y = rectangle(browser, panel, number)

    def answered():
        browser.point(x - 0.5, y)
        browser.point(x, y)
        return not browser.run("tip.hidden")

    browser.until(answered)
    return x, y


def test_it_loads_without_errors_or_requests(opened, whole):
    browser = opened()
    browser.run("1")  # whatever was reported on the way has now come
    asked = [each["params"]["request"]["url"] for each in browser.events if each["method"] == "Network.requestWillBeSent"]
    assert asked[0] == whole.path.resolve().as_uri()
    assert all(address.startswith("data:") for address in asked[1:])
    wrong = ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled", "Network.loadingFailed")
    assert [each for each in browser.events if each["method"] in wrong] == []
    assert browser.run("performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length") == 0


def test_the_policy_keeps_scripts_and_requests_out(opened):
    browser = opened()
    browser.run("const s = document.createElement('script'); s.textContent = 'window.evil = 1'; document.body.append(s)")
    assert browser.run("window.evil === undefined")
    refused = "fetch('http://127.0.0.1:9/').then(() => 'sent', e => e.constructor.name)"
    assert browser.run(refused) == "TypeError"
    asked = [each["params"]["request"]["url"] for each in browser.events if each["method"] == "Network.requestWillBeSent"]
    assert not any(address.startswith("http") for address in asked)


def test_no_global_is_added(opened):
    browser = opened()
    browser.run("const blank = document.createElement('iframe'); document.body.append(blank)")
    assert browser.run("Object.keys(window).filter(name => name !== '0' && !(name in blank.contentWindow))") == []


def test_pointing_at_a_sample_tells_what_it_is(opened):
    browser = opened()
    assert browser.run("document.getElementById('tip').hidden")
    hover(browser, 1, 3)
    lines = browser.run("[...document.querySelectorAll('#tip p')].map(p => p.textContent)")
    assert lines == ["label: dog", "predicted: cat (87.5%)", "log p(z): -3.50", "test sample 7"]
    assert browser.run("document.querySelector('#tip img').naturalWidth") == 1
    box = browser.run("(() => { const r = tip.getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom] })()")
    assert 0 <= box[0] < box[1] <= 1200
    assert 0 <= box[2] < box[3] <= 800
    browser.point(2, 2)
    browser.until(lambda: browser.run("document.getElementById('tip').hidden"))


def test_the_arrow_keys_step_through_the_samples(opened):
    browser = opened()
    browser.run("document.querySelector('[data-panel=\"0\"]').focus()")
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowRight", "ArrowLeft"):
        browser.call("Input.dispatchKeyEvent", type="keyDown", key=key)
        told.append(browser.run("document.querySelector('#tip p:last-child').textContent"))
    assert told == ["test sample 3", "test sample 5", "test sample 6", "test sample 5"]
    browser.call("Input.dispatchKeyEvent", type="keyDown", key="Escape")
    assert browser.run("tip.hidden")


def test_touching_a_sample_on_a_phone_tells_what_it_is(opened):
    browser = opened(width=390)
    browser.call("Emulation.setTouchEmulationEnabled", enabled=True)
    x, y = rectangle(browser, 0, 1)

    def answered():
        browser.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x + 6, "y": y + 6}])
        browser.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        return not browser.run("tip.hidden")

    browser.until(answered)
    assert "label: dog" in browser.run("tip.textContent")
    browser.call("Emulation.setTouchEmulationEnabled", enabled=False)


def test_the_filter_hides_a_class_everywhere_and_shows_it_again(opened):
    browser = opened()
    assert browser.run(VISIBLE.format(0)) == ["0", "1", "2", "1"]
    browser.run("document.querySelector('.class-filter[value=\"1\"]').click()")
    assert [browser.run(VISIBLE.format(panel)) for panel in (0, 1)] == [["0", "2"]] * 2
    assert browser.run("[...document.querySelectorAll('.contour.off')].map(e => e.dataset.class)") == ["1", "1"]
    assert browser.run("[...document.querySelectorAll('.name.off')].map(e => e.textContent)") == ["dog", "dog"]
    browser.run("document.querySelector('[data-classes=none]').click()")
    assert browser.run(VISIBLE.format(0)) == []
    browser.run("document.querySelector('[data-classes=all]').click(); document.querySelector('.only-wrong').click()")
    assert browser.run(VISIBLE.format(0)) == ["1"]


def test_a_hidden_sample_does_not_answer(opened):
    browser = opened()
    x, y = hover(browser, 0, 2)
    assert "label: owl" in browser.run("tip.textContent")
    browser.run("document.querySelector('.class-filter[value=\"2\"]').click()")
    for aside in (1, 0):
        browser.point(x - aside, y)
        assert browser.run("tip.hidden")


def test_a_download_has_the_text_of_the_sheet(opened, whole, tmp_path):
    browser = opened()
    browser.call("Browser.setDownloadBehavior", session=None, behavior="allow", downloadPath=str(tmp_path))
    browser.run("document.querySelector('a[download=\"latents.csv\"]').click()")
    file = tmp_path / "latents.csv"
    browser.until(file.exists)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "model,seed,index,z1,z2,label,predicted,confidence,log p(z)"
    assert lines[1] == "CE,0,3,0.0,0.0,cat,cat,0.99,-1.25"
    assert len(lines) == 1 + len(whole.sheet("latents"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_theme_follows_the_reader_and_can_be_switched(opened, scheme):
    browser = opened(scheme=scheme)
    ground = "getComputedStyle(document.body).backgroundColor"
    colors = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 26)"}
    assert browser.run(ground) == colors[scheme]
    browser.run("document.getElementById('theme').click()")
    assert browser.run(ground) == colors["dark" if scheme == "light" else "light"]
    browser.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    assert browser.run(ground) == colors["light"]
    assert browser.run("getComputedStyle(document.getElementById('theme')).display") == "none"
    browser.call("Emulation.setEmulatedMedia", media="")


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_nothing_sticks_out_of_the_page(opened, width):
    browser = opened(width=width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    out = browser.run(
        "[...document.querySelectorAll('main *, header *')].filter(e => !e.closest('.scroll, pre, svg') && "
        f"e.getBoundingClientRect().right > {width} + 1).map(e => e.tagName + ' ' + e.textContent.slice(0, 30))"
    )
    assert json.dumps(out) == "[]"


def test_the_scores_need_no_scrolling_at_1300_pixels(opened):
    browser = opened(width=1300)
    assert browser.run("[...document.querySelectorAll('.scroll')].filter(e => e.scrollWidth > e.clientWidth).length") == 0


def test_it_prints(opened):
    browser = opened()
    assert len(browser.call("Page.printToPDF")["data"]) > 20_000
