#!/bin/sh
exec consul lock -verbose locks/invoicing "./send-invoices --all"
