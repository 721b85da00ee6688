"""Times and durations are values."""

from pyflink.common import Duration, Time

print(Time.seconds(1) == Time.milliseconds(1000), Time.seconds(1) == Time.seconds(2))
print(
    Time.minutes(1).to_milliseconds(),
    Time.hours(hours=1).to_milliseconds(),
    Time.days(days=1).to_milliseconds(),
)
print(Time.seconds(seconds=2).to_milliseconds(), Time.milliseconds(milliseconds=5).to_milliseconds())
print(Duration.of_seconds(1) == Duration.of_millis(1000), Duration.of_minutes(1) == Duration.of_seconds(60))
print(Duration.of_hours(1) == Duration.of_minutes(60), Duration.of_days(1) == Duration.of_hours(25))
