"""The page for judging: its requests, and what a person sees in a real browser."""

import threading

import pytest

pytest.importorskip("uvicorn", reason="needs the extra serve")

from judge.sessions import HOSTILE, PAIRS, session, standing
from starlette.testclient import TestClient

from genm.errors import InputError
from genm.judge.store import GRADES
from genm.serve.judging import LABELS, judging_app, serve_judging

HOSTS = ("127.0.0.1", "testserver")


@pytest.fixture
def work(tmp_path):
    work = session(tmp_path, assess=standing)
    work.start()
    yield work
    work.stop()
    work.store.close()


@pytest.fixture
def http(work):
    return TestClient(judging_app(work, tokens=None, hosts=HOSTS))


def opinion(pair=PAIRS[0], **change):
    return {"key": "k" * 16, "query": pair[0], "document": pair[1], "action": "grade", "grade": 2} | change


def test_an_answer_means_that_it_is_stored_and_brings_the_next_pair(http, work):
    first = http.get("/v1/next", params={"judge": "ada"}).json()
    assert (first["next"]["query_id"], first["next"]["document_id"]) == PAIRS[0]
    assert first["next"]["text"] == HOSTILE
    answer = http.post("/v1/opinions", json=opinion(judge="ada", note="clear")).json()
    assert work.store.log()[0].note == "clear"
    assert (answer["judge"], answer["progress"]["n_judged"]) == ("ada", 1)
    assert answer["next"]["document_id"] == "d2", "the same query goes on"
    assert "score" not in http.get("/v1/next").text


def test_sending_again_changes_nothing(http, work):
    for _ in range(2):
        assert http.post("/v1/opinions", json=opinion()).status_code == 200
    assert len(work.store.log()) == 1
    assert http.post("/v1/opinions", json=opinion(grade=0)).status_code == 422


def test_every_grade_has_a_label():
    assert len(LABELS) == len(GRADES)


def test_undo(http):
    assert http.post("/v1/undo", json={"key": "u" * 16}).status_code == 409
    http.post("/v1/opinions", json=opinion())
    answer = http.post("/v1/undo", json={"key": "v" * 16}).json()
    assert (answer["next"]["query_id"], answer["next"]["document_id"]) == PAIRS[0]


def test_disagreements_are_listed_until_decided(http):
    http.post("/v1/opinions", json=opinion(judge="ada", grade=0, key="a" * 16))
    http.post("/v1/opinions", json=opinion(judge="bob", grade=3, key="b" * 16))
    (found,) = http.get("/v1/disputed").json()
    assert found["grades"] == {"ada": 0, "bob": 3}
    http.post("/v1/opinions", json=opinion(judge="cyd", action="decide", grade=1, key="c" * 16))
    assert http.get("/v1/disputed").json() == []
    assert http.get("/v1/judgments").text == "q1 0 d1 1\n"


def test_downloads(http):
    http.post("/v1/opinions", json=opinion())
    assert http.get("/v1/judgments").text == "q1 0 d1 2\n"
    table = http.get("/v1/judgments", params={"format": "csv"})
    assert table.text.splitlines()[1] == "q1,d1,2,person,1,1,1"
    assert table.headers["content-disposition"] == 'attachment; filename="judgments.csv"'
    assert http.get("/v1/judgments", params={"format": "jsonl"}).json()["key"] == "k" * 16
    assert http.get("/v1/judgments", params={"format": "xml"}).status_code == 422


@pytest.mark.parametrize(
    "change",
    [
        {"grade": 4}, {"grade": "2"}, {"grade": None}, {"action": "undo"}, {"key": "short"}, {"key": "<" * 16},
        {"document": "nowhere"}, {"note": "x" * 4001}, {"judge": ""}, {"judge": "a\n"}, {"more": 1},
    ],
)  # fmt: skip
def test_bad_bodies_are_refused_and_nothing_is_stored(http, work, change):
    answer = http.post("/v1/opinions", json=opinion(**change))
    assert answer.status_code == 422
    assert {"place", "expected", "found", "advice"} <= set(answer.json()["error"])
    assert work.store.log() == []


def test_pages_of_other_origins_are_kept_out(http, work):
    for headers in ({"origin": "https://evil.example"}, {"host": "evil.example"}):
        assert http.post("/v1/opinions", json=opinion(), headers=headers).status_code == 403
    assert http.post("/v1/opinions", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert (
        http.post("/v1/opinions", content=b"x" * 70_000, headers={"content-type": "application/json"}).status_code
        == 413
    )
    assert work.store.log() == []


def test_with_tokens_the_name_of_the_token_is_the_judge(work, tokens):
    http = TestClient(judging_app(work, tokens=tokens, hosts=HOSTS))
    assert http.get("/v1/next").status_code == 401
    secret = tokens.add("ada", ["feedback"])
    headers = {"authorization": f"Bearer {secret}"}
    assert http.post("/v1/opinions", json=opinion(judge="somebody"), headers=headers).status_code == 200
    assert work.store.log()[0].judge == "ada"


def test_other_machines_need_a_token(work):
    with pytest.raises(InputError, match="expected --tokens FILE, because other machines can reach this address"):
        serve_judging(work, host="0.0.0.0")


@pytest.fixture
def page(work, context, request):
    import asyncio

    import uvicorn

    config = uvicorn.Config(judging_app(work, tokens=None, hosts=HOSTS), port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    while not server.started:
        thread.join(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    page = context.new_page()
    page.set_viewport_size(getattr(request, "param", {"width": 1200, "height": 900}))
    page.said = []
    page.on("console", lambda message: page.said.append(message.text))
    page.on("pageerror", lambda error: page.said.append(str(error)))
    page.on("dialog", lambda dialog: page.said.append(f"dialog {dialog.message}"))
    page.goto(f"http://127.0.0.1:{port}/")
    page.wait_for_selector("html[data-ready]")
    yield page
    page.close()
    server.should_exit = True
    thread.join()


def test_judging_by_keyboard_alone(page, work):
    from playwright.sync_api import expect

    expect(page.locator("#query")).to_have_text("wing flutter at high speed")
    expect(page.locator("#text")).to_have_text(HOSTILE)
    assert page.locator("#text mark").all_inner_texts() == ["wing", "flutter"]
    page.keyboard.press("n")
    page.keyboard.type("2 figures")
    page.keyboard.press("Enter")
    page.keyboard.press("2")
    expect(page.locator("#document-id")).to_have_text("Document d2")
    expect(page.locator("#state")).to_have_text("Saved")
    assert [(one.grade, one.note) for one in work.store.log()] == [(2, "2 figures")]
    page.keyboard.press("z")
    expect(page.locator("#document-id")).to_have_text("Document d1")
    for key in "s0u3":
        ready = page.locator("html").get_attribute("data-ready")
        page.keyboard.press(key)
        page.wait_for_function("before => document.documentElement.dataset.ready !== before", arg=ready)
    expect(page.locator("#done")).to_be_visible()
    assert [one.action for one in work.store.opinions()] == ["skip", "grade", "unsure", "grade"]
    assert page.said == []


@pytest.mark.parametrize("page", [{"width": 390, "height": 780}, {"width": 1200, "height": 900}], indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(page, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page.emulate_media(color_scheme=scheme)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_server_that_is_gone_is_not_taken_for_saved(page, work):
    from playwright.sync_api import expect

    page.route(
        "**/v1/opinions", lambda route: route.fulfill(status=503, body='{"error": {"message": "disk full"}}')
    )
    page.keyboard.press("1")
    expect(page.locator("#failure")).to_have_text("Not saved: disk full")
    expect(page.locator("#document-id")).to_have_text("Document d1")
    assert work.store.log() == []
