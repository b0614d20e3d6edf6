"""Hand-made files of every format that is read, all of the same fixes; the fuzzer starts from them."""

import json
from datetime import UTC, datetime, timedelta

from elsewhere.traces.read import First, common_slots

# a day of one person: home, work, home, a fix every 20 minutes, in UTC
HOME, WORK = (46.5191, 6.5668), (46.5375, 6.6312)
BEGIN = datetime(2013, 4, 15, 0, 10, tzinfo=UTC)


def fixes(n=72, days=1):
    """(UTC time, lat, lon) of `days` days of n fixes."""
    step = timedelta(minutes=1440 / n)
    return [(BEGIN + i * step, *(WORK if n // 3 <= i % n < 2 * n // 3 else HOME)) for i in range(n * days)]


def iso(time):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def e7(degrees):
    return round(degrees * 1e7)


def csv(points, user="ann"):
    return "uid,datetime,lat,lng\n" + "".join(f"{user},{iso(t)},{lat},{lon}\n" for t, lat, lon in points)


def plt(points):
    head = (
        "Geolife trajectory\r\nWGS 84\r\nAltitude is in Feet\r\nReserved 3\r\n0,2,255,My Track,0,0,2,8421376\r\n0\r\n"
    )
    return head + "".join(
        f"{lat},{lon},0,492,{25569 + t.timestamp() / 86400:.10f},{t:%Y-%m-%d},{t:%H:%M:%S}\r\n"
        for t, lat, lon in points
    )


def gpx(points, creator="a watch"):
    inside = "".join(
        f'<trkpt lat="{lat}" lon="{lon}"><ele>372.0</ele><time>{iso(t)}</time></trkpt>\n' for t, lat, lon in points
    )
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" creator="{creator}" '
        'xmlns="http://www.topografix.com/GPX/1/1">\n<metadata><time>2020-01-01T00:00:00Z</time></metadata>\n'
        f'<wpt lat="1" lon="2"><name>a shop</name></wpt><trk><name>ann</name><trkseg>\n{inside}</trkseg></trk></gpx>\n'
    )


def geojson_points(points, user="ann"):
    features = [
        {
            "type": "Feature",
            "geometry": {"type": "Point", "coordinates": [lon, lat, 372.0]},
            "properties": {"user_id": user, "tracked_at": iso(t), "speed": 1.5},
        }
        for t, lat, lon in points
    ]
    return json.dumps({"type": "FeatureCollection", "name": "tracks", "features": features})


def geojson_line(points, key="datetimes", user="ann"):
    feature = {
        "type": "Feature",
        "properties": {"uid": user, key: [iso(t) for t, _, _ in points]},
        "geometry": {"type": "LineString", "coordinates": [[lon, lat] for _, lat, lon in points]},
    }
    area = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": []}}
    return json.dumps({"type": "FeatureCollection", "features": [feature, area]}, indent=1)


def moving_features(points, user="ann"):
    moving = {"type": "MovingPoint", "datetimes": [iso(t) for t, _, _ in points]}
    moving["coordinates"] = [[lon, lat] for _, lat, lon in points]
    return json.dumps({"type": "Feature", "properties": {"traj_id": user}, "temporalGeometry": moving})


def records(points, milliseconds=False):
    locations = [
        {
            "latitudeE7": e7(lat),
            "longitudeE7": e7(lon),
            "accuracy": 20,
            "activity": [{"activity": [{"type": "STILL", "confidence": 100}], "timestamp": iso(t)}],
            **({"timestampMs": str(int(t.timestamp() * 1000))} if milliseconds else {"timestamp": iso(t)}),
        }
        for t, lat, lon in points
    ]
    return json.dumps({"locations": [*locations, {"timestamp": iso(points[0][0]), "source": "WIFI"}]}, indent=2)


def stays(points):
    """(start, end, lat, lon) of the stretches at one place."""
    found = []
    for t, lat, lon in points:
        if found and found[-1][2:] == (lat, lon):
            found[-1] = (found[-1][0], t, lat, lon)
        else:
            found.append((t, t, lat, lon))
    return found


def android(points):
    visits = [
        {
            "startTime": f"{a:%Y-%m-%dT%H:%M:%S}.000+00:00",
            "endTime": f"{b:%Y-%m-%dT%H:%M:%S}.000+00:00",
            "visit": {"probability": 0.9, "topCandidate": {"placeLocation": {"latLng": f"{lat}°, {lon}°"}}},
        }
        for a, b, lat, lon in stays(points)
    ]
    t, lat, lon = points[3]
    path = {"startTime": iso(t), "endTime": iso(t), "timelinePath": [{"point": f"{lat}°, {lon}°", "time": iso(t)}]}
    t, lat, lon = points[5]
    signal = {"position": {"LatLng": f"{lat}°, {lon}°", "accuracyMeters": 13, "timestamp": iso(t)}}
    raw = [signal, {"wifiScan": {"deliveryTime": iso(t)}}]
    return json.dumps({"semanticSegments": [*visits, path], "rawSignals": raw, "userLocationProfile": {}})


def ios(points):
    objects = [
        {
            "startTime": f"{a:%Y-%m-%dT%H:%M:%S}.000+00:00",
            "endTime": f"{b:%Y-%m-%dT%H:%M:%S}.000+00:00",
            "visit": {"hierarchyLevel": "0", "topCandidate": {"placeLocation": f"geo:{lat},{lon}"}},
        }
        for a, b, lat, lon in stays(points)
    ]
    t, lat, lon = points[0]
    step = {"point": f"geo:{lat},{lon}", "durationMinutesOffsetFromStartTime": "40"}
    return json.dumps([*objects, {"startTime": iso(t), "endTime": iso(t), "timelinePath": [step]}])


def semantic_history(points):
    objects = [
        {
            "placeVisit": {
                "location": {"latitudeE7": e7(lat), "longitudeE7": e7(lon), "name": "somewhere"},
                "duration": {"startTimestamp": iso(a), "endTimestamp": iso(b)},
            }
        }
        for a, b, lat, lon in stays(points)
    ]
    (t, lat, lon), (_, b, c) = points[0], points[40]
    moving = {
        "startLocation": {"latitudeE7": e7(lat), "longitudeE7": e7(lon)},
        "endLocation": {"latitudeE7": e7(b), "longitudeE7": e7(c)},
        "duration": {"startTimestampMs": str(int(t.timestamp() * 1000)), "endTimestamp": iso(points[40][0])},
        "simplifiedRawPath": {"points": [{"latE7": e7(lat), "lngE7": e7(lon), "timestamp": iso(t)}]},
    }
    return json.dumps({"timelineObjects": [*objects, {"activitySegment": moving}]})


def foursquare(points, user=470):
    venues = {HOME: "49bbd6c0f964a520f4531fe3", WORK: "4a43c0aef964a520c6a61fe3"}
    return "".join(
        f'{user}\t{venues[lat, lon]}\t4bf58dd8d48988d127951735\tCafé "X"\t{lat}\t{lon}\t0\t'
        f"{t:%a %b %d %H:%M:%S} +0000 {t:%Y}\n"
        for t, lat, lon in points
    )


def foursquare_2015(points, user=470):
    venues = {HOME: "49bbd6c0f964a520f4531fe3", WORK: "4a43c0aef964a520c6a61fe3"}
    check_ins = "".join(
        f"{user}\t{venues[lat, lon]}\t{t:%a %b %d %H:%M:%S} +0000 {t:%Y}\t0\n" for t, lat, lon in points
    )
    pois = "".join(f"{venue}\t{lat}\t{lon}\tOffice\tCH\n" for (lat, lon), venue in venues.items())
    return check_ins, pois


def sglt(points):
    return "".join(f"1,{slot + 1},{1 if (lat, lon) == HOME else 2}\n" for slot, (_, lat, lon) in enumerate(points))


def json_rows(points, user="ann"):
    return json.dumps([{"uid": user, "time": iso(t), "lat": lat, "lng": lon} for t, lat, lon in points])


def json_lines(points, user="ann"):
    rows = ({"uid": user, "time": iso(t), "lat": lat, "lng": lon} for t, lat, lon in points)
    return "\n".join(map(json.dumps, rows))


EVERY = {
    "csv": csv,
    "geolife": plt,
    "gpx": gpx,
    "geojson of points": geojson_points,
    "geojson of lines": geojson_line,
    "moving features": moving_features,
    "records": records,
    "records in ms": lambda points: records(points, milliseconds=True),
    "android": android,
    "ios": ios,
    "semantic history": semantic_history,
    "foursquare": foursquare,
    "json rows": json_rows,
    "json lines": json_lines,
}


def read_together(sources, **options):
    """Traces by name, all on the map of the first, as commands that compare files read them; and notes."""
    (name, source), *others = sources.items()
    first = First.read(source, **options)
    traces, notes = {name: first.traces}, [f"{name}: {note}" for note in first.made.notes]
    for name, source in others:
        traces[name], more = first.read_further(source, name)
        common_slots(traces[name], first.traces, name)
        first = first.on(traces[name].locations)
        notes += more
    return {name: each.with_map(first.traces.locations) for name, each in traces.items()}, tuple(notes)
